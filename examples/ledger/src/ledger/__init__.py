"""A household ledger: accounts, monthly statements, CSV in and out."""
