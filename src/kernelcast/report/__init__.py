"""Records of results, and the tables in the docs that are made from them."""
