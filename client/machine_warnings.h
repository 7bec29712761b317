#pragma once

#include <string>

namespace hone::client {

/// Logical CPUs that this process may use at a time: the allowed ones, and no more than its control
/// group grants (rounded up).
int CpusHere();

/// A line that says that more threads than CPUs slow each other down; empty where they are not
/// more.
std::string ManyThreadsText(int threads, int cpus);

/// A warning for a measurement beside other programs that keep so many CPUs busy; empty where they
/// do not disturb it.
std::string BusyMachineText(double foreign_cpus);

}  // namespace hone::client
