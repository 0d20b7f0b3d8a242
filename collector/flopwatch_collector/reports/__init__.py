"""Reports: a period's ledger for people, finance tools and mail boxes, all from the same answer as the pages."""
