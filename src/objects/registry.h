// Registry: all handles of the process and the objects that exist from the start. Thread: any.
// Owner: runtime. Invariant: a lookup never follows a value that the user could have made up.
#pragma once
#include <cstdint>

#include "datatypes/type.h"
#include "objects/attributes.h"
#include "objects/comm.h"
#include "objects/errhandler.h"
#include "objects/group.h"
#include "objects/handle.h"
#include "objects/info.h"
#include "objects/op.h"
#include "objects/session.h"
#include "objects/tool.h"
#include "objects/window.h"
#include "settings/abi_constants.h"

namespace headway::objects {

// A datatype made by MPI_Type_create_f90_x. They stay, so that equal calls give equal handles.
struct Parametrized {
  Parametrized* next;
  datatypes::Type* type;
  uintptr_t handle;
};

class Registry {
 public:
  // Predefined ops, errhandlers, types. Works before MPI_Init.
  void prepare();

  // Each find_* returns null for the null handle and for what is not valid.
  Comm* find_comm(uintptr_t handle) const {
    if (handle == abi::k_COMM_WORLD) [[likely]]
      return world;
    if (handle == abi::k_COMM_SELF) return self;
    return static_cast<Comm*>(comms.find(handle));
  }
  // The communicator with that context, or null if it is not there any more. Looks at all of them:
  // for rare calls.
  Comm* find_comm_of(uint64_t context) const;
  [[gnu::always_inline]] datatypes::Type* find_type(uintptr_t handle) const {
    if (handle >> 8 == 2) [[likely]]
      return predefined_types_[handle & 255];  // 0x200 to 0x2ff
    return static_cast<datatypes::Type*>(types.find(handle));
  }
  Group* find_group(uintptr_t handle) const {
    if (handle == abi::k_GROUP_EMPTY) return empty_group;
    return static_cast<Group*>(groups.find(handle));
  }
  Op* find_op(uintptr_t handle) {
    if (handle < 0x40 && handle > abi::k_OP_NULL) {
      Op& op = predefined_ops_[handle - abi::k_OP_NULL];
      return op.builtin == datatypes::ReduceOp::none ? nullptr : &op;
    }
    return static_cast<Op*>(ops.find(handle));
  }
  Errhandler* find_errhandler(uintptr_t handle) {
    if (handle == abi::k_ERRORS_ARE_FATAL) return &errors_are_fatal;
    if (handle == abi::k_ERRORS_ABORT) return &errors_abort;
    if (handle == abi::k_ERRORS_RETURN) return &errors_return;
    return static_cast<Errhandler*>(errhandlers.find(handle));
  }
  Session* find_session(uintptr_t handle) const {
    return static_cast<Session*>(sessions.find(handle));
  }
  Window* find_window(uintptr_t handle) const { return static_cast<Window*>(windows.find(handle)); }
  Info* find_info(uintptr_t handle) {
    if (handle == abi::k_INFO_ENV) return info_env;
    return static_cast<Info*>(infos.find(handle));
  }

  Keyval* find_keyval(int number) const {
    return static_cast<Keyval*>(keyvals.find(uintptr_t(uint32_t(number))));
  }

  // The attributes of a datatype's handle, of which a type may have several. Null: there are none,
  // or with `make` no memory.
  Attributes* find_attributes(datatypes::Type& type, uintptr_t handle, bool make = false);
  // Before the handle goes. Those that are left are dropped without a callback.
  void drop_attributes(datatypes::Type& type, uintptr_t handle);

  // The handle of the type with these parameters, made by the first call. 0: `outcome` tells why.
  uintptr_t parametrized(datatypes::Combiner combiner, const int* numbers, int count,
                         datatypes::BasicType basic, Outcome& outcome);
  uintptr_t handle_of_parametrized(const datatypes::Type* type);

  // MPI_COMM_WORLD and MPI_COMM_SELF, from MPI_Init to MPI_Finalize.
  Comm* world = nullptr;
  Comm* self = nullptr;
  bool self_handler_set = false;  // by the program: MPI_COMM_SELF's
  // Of files that will be opened, and of calls on no file: MPI_FILE_NULL's. Null: errors_return.
  Errhandler* file_handler = nullptr;
  // The same communicators, as long as the library runs at all: sessions have no world.
  Comm* everyone = nullptr;
  Comm* alone = nullptr;
  Group* empty_group = nullptr;
  Info* info_env = nullptr;
  Errhandler errors_are_fatal;
  Errhandler errors_abort;
  Errhandler errors_return;

  HandleTable comms{HandleKind::comm};
  HandleTable groups{HandleKind::group};
  HandleTable types{HandleKind::datatype};
  HandleTable ops{HandleKind::op};
  HandleTable errhandlers{HandleKind::errhandler};
  HandleTable infos{HandleKind::info};
  HandleTable sessions{HandleKind::session};
  HandleTable windows{HandleKind::window};
  HandleTable files{HandleKind::file};  // io::File, which this room does not know
  HandleTable keyvals{HandleKind::keyval};
  ToolHandles tools;

 private:
  datatypes::Type* predefined_types_[256] = {};
  Op predefined_ops_[32];
  base::SpinLock parametrized_lock_;  // guards the list's start
  Parametrized* parametrized_ = nullptr;
  base::SpinLock attached_lock_;  // guards the lists of HandleAttributes that hang on types
  bool prepared_ = false;
};

}  // namespace headway::objects
