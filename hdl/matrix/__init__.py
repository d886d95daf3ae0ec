"""The array of multiply-accumulate lanes for products of matrices."""
