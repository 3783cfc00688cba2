"""What imports have done: how far each file was read, and what each import added."""
