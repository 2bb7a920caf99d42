"""Which strategy works with which training API: the judged cells and their table."""
