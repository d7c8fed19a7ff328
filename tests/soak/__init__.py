"""Random programs on a backend for some minutes, until one gives a wrong answer."""
