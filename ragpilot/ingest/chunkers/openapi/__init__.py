"""OpenAPI 3.0, 3.1 and Swagger 2: one chunk an operation, with what its references name, and chunks for the rest."""
