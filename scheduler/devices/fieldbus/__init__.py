"""Drivers for CAN, Modbus and OPC UA."""
