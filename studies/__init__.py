"""Studies beside the product: what was measured with it, outside the paper and the package."""
