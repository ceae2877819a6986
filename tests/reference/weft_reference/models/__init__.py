"""One module or package a model family; each has `goldens()`, a list in code of what is made for it."""
