"""What a user builds: diagrams and subsystems, with their options."""
