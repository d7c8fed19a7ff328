"""The experiments of the five papers that lagpu implements: data, and how they are run."""
