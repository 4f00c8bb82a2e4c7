"""What FMUs carry besides FMI's functions: terminals and icons, reference results, CAN frames."""
