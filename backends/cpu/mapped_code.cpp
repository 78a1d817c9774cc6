// Owns: see mapped_code.h.
#include "backends/cpu/mapped_code.h"

#ifdef __linux__
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace graphlift::cpu {

#ifdef __linux__
namespace {

// Whether the linker writes addresses into its code.
bool has_relocated_code(const dl_phdr_info& library) {
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const auto& segment = library.dlpi_phdr[i];
    if (segment.p_type != PT_DYNAMIC) continue;
    for (const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(library.dlpi_addr + segment.p_vaddr);
         entry->d_tag != DT_NULL; ++entry)
      if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0))
        return true;
  }
  return false;
}

int unmap(dl_phdr_info* library, size_t, void* wanted) {
  const std::string_view path = library->dlpi_name, name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with(*static_cast<const std::string_view*>(wanted)) || has_relocated_code(*library)) return 0;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    // Whole pages: the first and the last may be shared with a segment that is written.
    const uintptr_t begin = (library->dlpi_addr + segment.p_vaddr + page - 1) / page * page;
    const uintptr_t end = (library->dlpi_addr + segment.p_vaddr + segment.p_filesz) / page * page;
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void unmap_code(std::string_view library) { dl_iterate_phdr(unmap, &library); }
#else
void unmap_code(std::string_view) {}
#endif

}  // namespace graphlift::cpu
