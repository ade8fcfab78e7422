"""One module per vendor: the only place, beside bootstrap, where a vendor is named."""
