"""The peak of the memory of a process, for programs that tests run."""

# What `resource` says begins with the peak of the process that started this one, which is a test with many modules.
PEAK = """
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
"""
