"""Programs timed on an attached device: variants of one computation, shown equal, then measured side by side."""
