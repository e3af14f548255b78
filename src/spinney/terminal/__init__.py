"""What every command needs: which store or server it works on, arguments and options in common, tables and
colours, confirmation, completion, interrupts, exit codes. The commands stand with their features;
``spinney.cli`` puts them together.
"""
