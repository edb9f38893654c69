"""Pure functions: a recorded version to the payload (plain JSON data) of one view."""
