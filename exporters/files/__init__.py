"""Tables as files: TSV, CSV and Parquet."""
