"""Published results next to what the model predicts for them."""
