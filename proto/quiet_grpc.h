#pragma once

namespace hone::proto {

/// What gRPC says by itself, beside the status of each call, is a debug message of the log from now
/// on. For main: a program that links our library may want to hear it.
void KeepGrpcQuiet();

}  // namespace hone::proto
