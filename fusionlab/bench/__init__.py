"""Programs timed on a device that is there: variants of one computation, shown equal, then measured side by side."""
