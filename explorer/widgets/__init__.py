"""Notebook widgets. Imported only where a notebook shows one: nothing else needs anywidget."""
