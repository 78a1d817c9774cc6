// Owns: cuBLASLt's functions over plain loops, so that what descriptors say is tested without a GPU; what was
// multiplied is told to tests by emulated_cublaslt_log(). Calls that the library forbids fail.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Operation {
  int compute = 0, scale = 0;
  int32_t transpose_a = 0, transpose_b = 0;
  uint32_t epilogue = 1;
  const void* bias = nullptr;
  void* aux = nullptr;
  int64_t aux_pitch = 0, aux_batch = 0;
};
struct Layout {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t pitch = 0;
  int32_t batch = 1;
  int64_t batch_stride = 0;
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t schemes = 7, alignment[4] = {256, 256, 256, 256};
};
struct Heuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

std::mutex mutex;
std::string told;

template <class T>
int copy(T* to, const void* from, size_t bytes) {
  if (bytes != sizeof(T)) return 7;
  std::memcpy(to, from, bytes);
  return 0;
}

double bf16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}
uint16_t to_bf16(double value) {
  const auto narrow = static_cast<float>(value);
  uint32_t raw;
  std::memcpy(&raw, &narrow, 4);
  return narrow != narrow ? 0x7fc0 : static_cast<uint16_t>((raw + 0x7fff + ((raw >> 16) & 1)) >> 16);
}

double read(int type, const void* data, int64_t i) {
  switch (type) {
    case 0:
      return static_cast<const float*>(data)[i];
    case 1:
      return static_cast<const double*>(data)[i];
    case 2:
      return static_cast<double>(static_cast<const _Float16*>(data)[i]);
    default:
      return bf16(static_cast<const uint16_t*>(data)[i]);
  }
}
void write(int type, void* data, int64_t i, double value) {
  switch (type) {
    case 0:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      return;
    case 1:
      static_cast<double*>(data)[i] = value;
      return;
    case 2:
      static_cast<_Float16*>(data)[i] = static_cast<_Float16>(static_cast<float>(value));
      return;
    default:
      static_cast<uint16_t*>(data)[i] = to_bf16(value);
  }
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
double gelu_slope(double x) {
  const double t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

uint64_t fingerprint(const Operation& op, const Layout& a, const Layout& b, const Layout& d) {
  return op.epilogue * 1000003u + static_cast<uint64_t>(op.compute) * 10007u + a.rows * 31u + b.columns * 17u +
         d.columns + static_cast<uint64_t>(a.type);
}

bool fits(const Operation& op, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  const auto rows = [](const Layout& x, int t) { return t ? x.columns : x.rows; };
  const auto columns = [](const Layout& x, int t) { return t ? x.rows : x.columns; };
  for (const Layout* x : {&a, &b, &c, &d})
    if (x->pitch < static_cast<int64_t>(x->rows) || x->batch != d.batch) return false;
  const bool widens = d.type == 0 && (a.type == 2 || a.type == 14) && !(op.epilogue & ~3u);
  if (a.type != b.type || c.type != d.type || (a.type != d.type && !widens)) return false;
  return rows(a, op.transpose_a) == d.rows && columns(b, op.transpose_b) == d.columns &&
         columns(a, op.transpose_a) == rows(b, op.transpose_b) && c.rows == d.rows && c.columns == d.columns;
}

double finish(const Operation& op, int type, double value, int64_t row, int64_t column, int32_t batch) {
  if (op.epilogue & 4) value += read(type, op.bias, row);
  if (op.epilogue & 2) value = value > 0 || value != value ? value : 0;
  if ((op.epilogue & 0xff) == 192)
    return value * gelu_slope(read(type, op.aux, batch * op.aux_batch + column * op.aux_pitch + row));
  if (op.epilogue == 160 || op.epilogue == 164)
    write(type, op.aux, batch * op.aux_batch + column * op.aux_pitch + row, value);
  return op.epilogue & 32 ? gelu(value) : value;
}

}  // namespace

extern "C" {

// What was multiplied so far, a line each; and begins anew.
const char* emulated_cublaslt_log() {
  static std::string shown;
  const std::lock_guard lock(mutex);
  shown.swap(told);
  told.clear();
  return shown.c_str();
}

size_t cublasLtGetVersion() { return 130000; }
int cublasLtCreate(void** handle) {
  static int one;
  *handle = &one;
  return 0;
}
int cublasLtMatmulDescCreate(void** made, int compute, int scale) {
  *made = new Operation{compute, scale};
  return 0;
}
int cublasLtMatmulDescDestroy(void* operation) {
  delete static_cast<Operation*>(operation);
  return 0;
}
int cublasLtMatmulDescSetAttribute(void* operation, int attribute, const void* value, size_t bytes) {
  auto& it = *static_cast<Operation*>(operation);
  switch (attribute) {
    case 3:
      return copy(&it.transpose_a, value, bytes);
    case 4:
      return copy(&it.transpose_b, value, bytes);
    case 7:
      return copy(&it.epilogue, value, bytes);
    case 8:
      return copy(&it.bias, value, bytes);
    case 11:
      return copy(&it.aux, value, bytes);
    case 12:
      return copy(&it.aux_pitch, value, bytes);
    case 13:
      return copy(&it.aux_batch, value, bytes);
    default:
      return 7;
  }
}
int cublasLtMatrixLayoutCreate(void** made, int type, uint64_t rows, uint64_t columns, int64_t pitch) {
  *made = new Layout{type, rows, columns, pitch};
  return 0;
}
int cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Layout*>(layout);
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value, size_t bytes) {
  auto& it = *static_cast<Layout*>(layout);
  if (attribute == 5) return copy(&it.batch, value, bytes);
  return attribute == 6 ? copy(&it.batch_stride, value, bytes) : 7;
}
int cublasLtMatmulPreferenceCreate(void** made) {
  *made = new Preference;
  return 0;
}
int cublasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<Preference*>(preference);
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(void* preference, int attribute, const void* value, size_t bytes) {
  auto& it = *static_cast<Preference*>(preference);
  if (attribute == 1) return copy(&it.workspace, value, bytes);
  if (attribute == 3) return copy(&it.schemes, value, bytes);
  return attribute >= 5 && attribute <= 8 ? copy(&it.alignment[attribute - 5], value, bytes) : 7;
}

int cublasLtMatmulAlgoGetHeuristic(void*, void* operation, void* a, void* b, void* c, void* d, void* preference,
                                   int most, Heuristic* found, int* count) {
  const auto& op = *static_cast<Operation*>(operation);
  const auto &la = *static_cast<Layout*>(a), &lb = *static_cast<Layout*>(b), &lc = *static_cast<Layout*>(c),
             &ld = *static_cast<Layout*>(d);
  *count = 0;
  if (!fits(op, la, lb, lc, ld)) return 15;
  for (; *count < most && *count < 3; ++*count) {
    found[*count] = {};
    found[*count].algorithm[0] = fingerprint(op, la, lb, ld);
    found[*count].algorithm[1] = static_cast<uint64_t>(*count);
    found[*count].workspace = *count == 0 ? 0 : 64;
    found[*count].algorithm[2] = static_cast<const Preference*>(preference)->alignment[0];
  }
  return 0;
}

int cublasLtMatmulAlgoCheck(void*, void* operation, void* a, void* b, void*, void* d, const uint64_t* algorithm,
                            Heuristic* checked) {
  *checked = {};
  checked->workspace = algorithm[1] == 0 ? 0 : 64;
  return algorithm[0] == fingerprint(*static_cast<Operation*>(operation), *static_cast<Layout*>(a),
                                     *static_cast<Layout*>(b), *static_cast<Layout*>(d))
             ? 0
             : 15;
}

int cublasLtMatmul(void*, void* operation, const void* alpha, const void* a, void* la, const void* b, void* lb,
                   const void* beta, const void* c, void* lc, void* d, void* ld, const uint64_t* algorithm,
                   void* workspace, size_t workspace_bytes, void*) {
  const Operation op = *static_cast<Operation*>(operation);
  const auto &A = *static_cast<Layout*>(la), &B = *static_cast<Layout*>(lb), &C = *static_cast<Layout*>(lc),
             &D = *static_cast<Layout*>(ld);
  if (!fits(op, A, B, C, D) || algorithm[0] != fingerprint(op, A, B, D)) return 7;
  if ((algorithm[1] == 0 ? 0u : 64u) > workspace_bytes || (algorithm[1] != 0 && !workspace)) return 7;
  for (const void* address : {a, b, c, static_cast<const void*>(d)})
    if (reinterpret_cast<uintptr_t>(address) % algorithm[2] != 0) return 7;
  if ((op.epilogue & 4) && reinterpret_cast<uintptr_t>(op.bias) < 4096) return 7;
  const double times = read(op.scale, alpha, 0), added = read(op.scale, beta, 0);
  const auto inner = static_cast<int64_t>(op.transpose_a ? A.rows : A.columns);
  std::vector<double> values;
  for (int32_t batch = 0; batch < D.batch; ++batch)
    for (int64_t column = 0; column < static_cast<int64_t>(D.columns); ++column)
      for (int64_t row = 0; row < static_cast<int64_t>(D.rows); ++row) {
        double sum = 0;
        for (int64_t i = 0; i < inner; ++i)
          sum +=
              read(A.type, a, batch * A.batch_stride + (op.transpose_a ? row * A.pitch + i : i * A.pitch + row)) *
              read(B.type, b, batch * B.batch_stride + (op.transpose_b ? i * B.pitch + column : column * B.pitch + i));
        double value = times * sum;
        if (added != 0) value += added * read(C.type, c, batch * C.batch_stride + column * C.pitch + row);
        write(D.type, d, batch * D.batch_stride + column * D.pitch + row,
              finish(op, D.type, value, row, column, batch));
      }
  const std::lock_guard lock(mutex);
  char line[256];
  std::snprintf(line, sizeof line, "type %d compute %d %ldx%ldx%ld batch %d trans %d%d epilogue %u alpha %g beta %g\n",
                D.type, op.compute, static_cast<long>(D.rows), static_cast<long>(D.columns), static_cast<long>(inner),
                D.batch, op.transpose_a, op.transpose_b, op.epilogue, times, added);
  told += line;
  return 0;
}
}
