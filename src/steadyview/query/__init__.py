"""Consistent reads over several views, and verification.

Belongs here: queries at one common cn, relations as of a cn, comparing a view with its SQL text.
Does not belong here: maintenance. Verification shares no code with it beyond reading a source.
"""
