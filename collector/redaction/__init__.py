"""Recognises secrets such as passwords in command lines and text, and replaces them with REDACTED."""
