// Private copies: a forked child shares nothing with its parent, although aliases are shared
// mappings. The child copies them, and the thread of the parent that forked waits for it, so that
// the child has what was there when it was made. Thread: any. Owner: the process. Invariant: the
// parent's wait ends with the child's copy, its death, or after ten seconds.
#pragma once

namespace headway::guard {

// To be called before the first alias is made. False: no memory.
bool copy_for_children();

}  // namespace headway::guard
