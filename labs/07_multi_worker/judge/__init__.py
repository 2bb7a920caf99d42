"""Lab 07, several workers: broken TF_CONFIGs, and programs on a fake cluster."""
