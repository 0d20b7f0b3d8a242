"""The books behind the accounting: windows computed, kept, closed, and computed again."""
