// Owns: see shape_arg.h.
#include "ops/shape_arg.h"

namespace graphlift::ops {

ShapeArg shape_arg(const ir::Arg& arg) {
  return std::visit(
      [](const auto& value) -> ShapeArg {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, ir::ValueRef>) {
          return &ir::type_of(value);
        } else if constexpr (std::is_same_v<T, ir::ArgList>) {
          std::vector<ShapeArg> list;
          list.reserve(value.size());
          for (const ir::Arg& item : value) list.push_back(shape_arg(item));
          return list;
        } else {
          return value;
        }
      },
      static_cast<const ir::Arg::variant&>(arg));
}

}  // namespace graphlift::ops
