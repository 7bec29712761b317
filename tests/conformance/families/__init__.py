"""The families of random operator cases: each function draws one case and gives its outputs."""
