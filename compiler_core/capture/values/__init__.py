"""What the symbolic interpreter computes with, one file per kind; `base.py` has the idea."""
