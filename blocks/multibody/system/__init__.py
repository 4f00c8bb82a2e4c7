"""What a user describes: a system, its bodies and laws."""
