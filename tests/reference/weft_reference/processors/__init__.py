"""What stands before a model, as the reference does it: goldens that need no model."""
