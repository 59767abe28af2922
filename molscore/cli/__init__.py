"""The Typer app, one file per command: options -> configuration -> API call -> writer."""
