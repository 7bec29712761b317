#pragma once

namespace hone::server {

/// Has the process's malloc give back what a search has freed. Searches train models on threads of
/// their own, in buffers of some hundred KiB to some MiB; by default glibc keeps such buffers in up
/// to eight arenas a core, where small blocks that live on (records, leases) hold them: honed with
/// 1,000 workers grew by 1.5 KiB a result for as long as it ran. Large blocks are mapped each
/// alone from here on, and there are two arenas a core. For who starts the process, before other
/// threads; cannot fail (with another malloc it does nothing).
void KeepHeapFlat();

}  // namespace hone::server
