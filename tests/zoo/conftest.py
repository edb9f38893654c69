"""The zoo's test shares the modules that lie beside it with the command that makes the table."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
