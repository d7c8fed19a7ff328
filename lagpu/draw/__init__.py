"""How matrices, vectors, masks, frontiers and graphs look, on a page in SVG and in Matplotlib."""
