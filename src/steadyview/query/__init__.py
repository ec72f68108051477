"""Consistent reads over several views, and verification.

Belongs here: sources frozen at one moment, relations as of a cn, comparing a view with its SQL
text. Does not belong here: maintenance. Verification shares no code with it beyond reading a source
and knowing what its answer reflects.
"""
