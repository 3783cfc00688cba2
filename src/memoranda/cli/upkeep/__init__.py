"""Commands that take care of a home: doctor, backup, restore, sync, migrate, shards and forget."""
