"""The explorer: recordings of compiles as tables, linked panes and reports.

import explorer
recording = explorer.open("run.cutaway.gz")    # needs no torch
"""

from __future__ import annotations

from explorer.links import Links
from explorer.session import RecordingError
from explorer.session import open_recording as open

__all__ = ["Links", "RecordingError", "open"]
