"""New traces from old ones: recovered from a damaged one, cut back, or joined from halves."""
