"""What a user describes: a system, its bodies, joints and laws."""
