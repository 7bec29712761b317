"""Networks as exporters write them: each function draws one and gives its outputs."""
