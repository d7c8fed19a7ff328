"""`loop` and `sweep`, and the proof that a backend may run a body as a whole."""
