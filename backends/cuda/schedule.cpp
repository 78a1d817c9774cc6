// Owns: see schedule.h.
#include "backends/cuda/schedule.h"

#include <algorithm>

namespace graphlift::cuda {
namespace {

using codegen::Affine;
using codegen::Kernel;
using codegen::ScalarNode;
using ir::Sym;
using Kind = ScalarNode::Kind;

constexpr int kVectorBytes = 16;
constexpr int kWarp = 32;
constexpr int kMostThreads = 1024;
constexpr int kMostSteps = 16;
// Blocks of 256 threads that a processor has at once: loads in flight are what fills the memory's bandwidth.
constexpr int kBlocksPerProcessor = 8;
// Elements that are worth a block of their own.
constexpr int64_t kSplitElements = 8192;

bool is_multiple(const Sym& value, int64_t of) { return mod(value, of).same(0); }

int64_t next_power(int64_t value) {
  int64_t power = 1;
  while (power < value) power *= 2;
  return power;
}

int64_t hint(const Sym& value, int64_t otherwise) { return value.is_constant() ? value.constant() : otherwise; }

template <class Visit>
void for_each_access(const Kernel& kernel, Visit visit) {
  for (const ScalarNode& node : kernel.nodes)
    if (node.kind == Kind::Load) visit(node.buffer, node.index, 1);
  for (const auto& store : kernel.stores) visit(store.buffer, store.index, 2);
}

class Scheduler {
 public:
  Scheduler(const Kernel& kernel, const Target& target, const Variant& variant)
      : kernel_(kernel), target_(target), variant_(variant) {}

  Schedule run() {
    made_.wide = variant_.wide;
    find_levels();
    made_.vector_axis = choose_vector_axis();
    const int vector = made_.vector_axis;
    if (reduces()) made_.shape = vector >= 0 && axis(vector).reduced ? Shape::Rows : Shape::Columns;
    order_axes();
    if (made_.shape == Shape::Elements) choose_tile();
    if (made_.shape == Shape::Elements && made_.tile_axis < 0) made_.threads = threads_or(made_.threads);
    choose_lanes();
    if (made_.shape == Shape::Rows) kernel_.has_across() ? walk_rows() : share_rows();
    if (made_.shape == Shape::Columns) share_columns();
    return std::move(made_);
  }

 private:
  const codegen::KernelAxis& axis(int i) const { return kernel_.axes[static_cast<size_t>(i)]; }

  int threads_or(int usual) const { return target_.tiling.threads > 0 ? target_.tiling.threads : usual; }

  int64_t split(int64_t blocks) const { return blocks * target_.tiling.split_percent / 100; }

  bool reduces() const {
    return kernel_.has_reduction() || std::any_of(kernel_.nodes.begin(), kernel_.nodes.end(),
                                                  [](const auto& node) { return node.kind == Kind::Reduce; });
  }

  void find_levels() {
    made_.is_inner.clear();
    made_.phase.clear();
    auto phase_of = [&](int node) { return made_.phase[static_cast<size_t>(node)]; };
    int loops = 0;
    for (const ScalarNode& node : kernel_.nodes) {
      bool inner = false;
      int phase = 0;
      for (const int arg : node.args) {
        inner = inner || made_.is_inner[static_cast<size_t>(arg)];
        phase = std::max(phase, phase_of(arg));
      }
      if (node.kind == Kind::Load || node.kind == Kind::Index) inner = inner || varies(kernel_, node.index);
      if (node.kind == Kind::Reduce) inner = false, ++phase;
      const size_t i = made_.phase.size();
      if (i < made_.maximum.size() && made_.maximum[i] >= 0) phase = phase_of(made_.maximum[i]);
      made_.is_inner.push_back(inner);
      made_.phase.push_back(phase);
      if (node.kind == Kind::Reduce) loops = std::max(loops, phase);
      if (node.kind == Kind::Across) loops = std::max(loops, phase + 1);
    }
    made_.late = kernel_.find_late();
    for (const auto& store : kernel_.stores)
      if (varies(kernel_, store.index) && !made_.late[static_cast<size_t>(store.value)])
        loops = std::max(loops, phase_of(store.value) + 1);
    made_.phases = loops;
  }

  // --- axes ----------------------------------------------------------------------------------------------------------
  // What is the same along an axis is little memory.
  bool is_large(const Affine& index) const {
    for (size_t i = 0; i < index.strides.size(); ++i)
      if (index.strides[i].same(0) && hint(kernel_.axes[i].extent, 64) >= 4) return false;
    return true;
  }

  int64_t unit_steps(int candidate) const {
    int64_t score = 0;
    for_each_access(kernel_, [&](int buffer, const Affine& index, int weight) {
      const Sym& stride = index.strides[static_cast<size_t>(candidate)];
      if (is_large(index)) weight *= 16;
      weight *= ir::bytes(kernel_.buffers[static_cast<size_t>(buffer)].dtype);
      if (stride.same(1))
        score += 2 * weight;
      else if (!stride.same(0))
        score -= weight;
    });
    return score;
  }

  int choose_vector_axis() const {
    int best = -1;
    int64_t best_score = 0;
    const bool across = kernel_.has_across();
    for (int i = static_cast<int>(kernel_.axes.size()); i-- > 0;) {
      if (across && !axis(i).reduced) continue;
      int64_t score = 4 * unit_steps(i) + (axis(i).reduced ? 1 : 0);
      if (hint(axis(i).extent, 64) < 4) score /= 4;
      if (best < 0 || score > best_score) best = i, best_score = score;
    }
    return best;
  }

  int64_t largest_stride(int candidate) const {
    int64_t largest = 0;
    for_each_access(kernel_, [&](int, const Affine& index, int) {
      largest = std::max(largest, std::abs(hint(index.strides[static_cast<size_t>(candidate)], int64_t{1} << 30)));
    });
    return largest;
  }

  void order_axes() {
    for (int i = 0; i < static_cast<int>(kernel_.axes.size()); ++i)
      if (i != made_.vector_axis) (axis(i).reduced ? made_.inner : made_.kept).push_back(i);
    auto slower = [&](int a, int b) { return largest_stride(a) > largest_stride(b); };
    std::stable_sort(made_.kept.begin(), made_.kept.end(), slower);
    std::stable_sort(made_.inner.begin(), made_.inner.end(), slower);
    if (made_.vector_axis < 0) return;
    (axis(made_.vector_axis).reduced ? made_.inner : made_.kept).push_back(made_.vector_axis);
  }

  // An axis along which much memory lies that would be touched in pieces along the vector axis.
  void choose_tile() {
    constexpr int64_t kSmallest = 16;
    const int vector = made_.vector_axis;
    if (vector < 0 || hint(axis(vector).extent, kSmallest) < kSmallest) return;
    int64_t all = 0;
    std::vector<int64_t> along(kernel_.axes.size(), 0);
    for_each_access(kernel_, [&](int buffer, const Affine& index, int) {
      const int bytes = ir::bytes(kernel_.buffers[static_cast<size_t>(buffer)].dtype);
      const Sym& stride = index.strides[static_cast<size_t>(vector)];
      if (stride.same(0)) return;
      all += bytes;
      for (size_t i = 0; i < along.size(); ++i)
        if (!stride.same(1) && index.strides[i].same(1)) along[i] += bytes;
    });
    const auto most = std::max_element(along.begin(), along.end()) - along.begin();
    if (4 * along[static_cast<size_t>(most)] < all || along[static_cast<size_t>(most)] == 0) return;
    if (hint(axis(static_cast<int>(most)).extent, kSmallest) < kSmallest) return;
    made_.tile_axis = static_cast<int>(most);
  }

  // --- lanes ---------------------------------------------------------------------------------------------------------
  bool is_vector(const Affine& index, int lanes) const {
    if (lanes == 1) return false;
    if (along_) return is_beside(index, *along_, lanes);
    if (!is_multiple(index.offset, lanes)) return false;
    for (int i = 0; i < static_cast<int>(index.strides.size()); ++i) {
      const Sym& stride = index.strides[static_cast<size_t>(i)];
      if (i == made_.vector_axis ? !stride.same(1) : !is_multiple(stride, lanes)) return false;
    }
    return true;
  }

  // Whether two accesses are a multiple of `lanes` apart everywhere.
  bool is_beside(const Affine& a, const Affine& b, int lanes) const {
    if (!is_multiple(a.offset - b.offset, lanes)) return false;
    for (int i = 0; i < static_cast<int>(a.strides.size()); ++i) {
      const Sym &x = a.strides[static_cast<size_t>(i)], &y = b.strides[static_cast<size_t>(i)];
      if (i == made_.vector_axis ? !(x.same(1) && y.same(1)) : !is_multiple(x - y, lanes)) return false;
    }
    return true;
  }

  // Long rows that no vectors of `lanes` fit to, from their first element on.
  bool peel(int lanes) {
    constexpr int64_t kLeast = 1024;
    const bool fits = made_.shape == Shape::Rows && !kernel_.has_across() && made_.inner.size() == 1;
    if (!fits || hint(axis(made_.vector_axis).extent, kLeast) < kLeast) return false;
    for_each_access(kernel_, [&](int, const Affine& index, int) {
      if (made_.peeled || !index.strides[static_cast<size_t>(made_.vector_axis)].same(1)) return;
      along_ = &index;
      made_.peeled = pays(lanes);
    });
    if (!made_.peeled) along_ = nullptr;
    return made_.peeled;
  }

  // Whether more bytes move in whole vectors than do not.
  bool pays(int lanes) const {
    int64_t whole = 0, scattered = 0;
    for_each_access(kernel_, [&](int buffer, const Affine& index, int) {
      if (index.strides[static_cast<size_t>(made_.vector_axis)].same(0)) return;
      const int bytes = ir::bytes(kernel_.buffers[static_cast<size_t>(buffer)].dtype);
      (is_vector(index, lanes) ? whole : scattered) += bytes;
    });
    return whole > 0 && (made_.tile_axis >= 0 || whole >= 2 * scattered);
  }

  void choose_lanes() {
    int narrowest = kVectorBytes;
    if (made_.vector_axis >= 0) {
      for_each_access(kernel_, [&](int buffer, const Affine& index, int) {
        if (index.strides[static_cast<size_t>(made_.vector_axis)].same(1))
          narrowest = std::min(narrowest, ir::bytes(kernel_.buffers[static_cast<size_t>(buffer)].dtype));
      });
      const Sym& extent = axis(made_.vector_axis).extent;
      const bool alone = made_.shape == Shape::Elements && made_.kept.size() == 1;
      const int most = variant_.aligned ? std::min(target_.tiling.lanes, most_lanes(kVectorBytes / narrowest)) : 1;
      int lanes = most;
      while (lanes > 1 && !((alone || is_multiple(extent, lanes)) && pays(lanes) && fills(lanes))) lanes /= 2;
      if (lanes < most && peel(most)) lanes = most;
      made_.lanes = lanes;
      made_.ragged = lanes > 1 && !made_.peeled && !is_multiple(extent, lanes);
    }
    for (const ScalarNode& node : kernel_.nodes)
      made_.vector_load.push_back((node.kind == Kind::Load || node.kind == Kind::Index) &&
                                  is_vector(node.index, made_.lanes) && has_whole_places(node));
    for (const auto& store : kernel_.stores)
      made_.vector_store.push_back(!made_.late[static_cast<size_t>(store.value)] &&
                                   is_vector(store.index, made_.lanes));
  }

  // A thread that makes several columns has a sum, and what is made of it, for each lane: more lanes than these leave a
  // processor too few threads where sums are wide, or where a second loop needs them.
  int most_lanes(int given) const {
    constexpr int kColumnLanes = 4;
    if (made_.shape != Shape::Columns) return given;
    const bool wide = std::any_of(kernel_.nodes.begin(), kernel_.nodes.end(), [](const ScalarNode& node) {
      return node.kind == Kind::Reduce && ir::bytes(node.type) > 4;
    });
    return wide || made_.phases > 1 ? std::min(given, kColumnLanes) : given;
  }

  // Of a load at places: whether these leave vectors whole.
  bool has_whole_places(const ScalarNode& node) const {
    if (node.kind != Kind::Load) return true;
    for (size_t i = 0; i < node.args.size(); ++i)
      if (!is_place(kernel_, node.args[i], made_.vector_axis) || !is_multiple(node.steps[i], made_.lanes)) return false;
    return true;
  }

  // Few elements: rather more threads than wide ones.
  bool fills(int lanes) const {
    if (made_.shape == Shape::Rows) return true;
    const Sym results = product(kernel_, made_.kept);
    // Of many rows, neighbouring threads have some each.
    constexpr int64_t kManyRows = 4096, kLeastVectors = 4;
    const bool many = hint(product(kernel_, made_.inner), kManyRows) >= kManyRows;
    const int64_t columns = many ? kLeastVectors : kWarp;
    const int64_t want = made_.shape == Shape::Elements ? int64_t{target_.processors} * 256 : columns;
    return !results.is_constant() || results.constant() / lanes >= want || lanes <= 2;
  }

  // --- rows ----------------------------------------------------------------------------------------------------------
  int64_t row_steps() const { return hint(product(kernel_, made_.inner), 4096) / made_.lanes; }

  void share_rows() {
    const int64_t steps = row_steps(), per_thread = target_.tiling.steps_per_thread;
    // Of a peeled row each thread has one of the elements before and behind the vectors.
    const int64_t least = made_.peeled ? 2 * made_.lanes : 1;
    const int64_t sharing = next_power(std::max(least, (steps + per_thread - 1) / per_thread));
    if (sharing <= kWarp) {
      made_.across = static_cast<int>(std::max<int64_t>(1, sharing));
      made_.threads = threads_or(128);
    } else {
      made_.across = made_.threads = static_cast<int>(std::min<int64_t>(sharing, kMostThreads));
    }
    split_rows(steps);
    const bool known = product(kernel_, made_.inner).is_constant();
    if (made_.splits == 1 && known) unroll_rows();
    if (!made_.keeps) join_maxima();
    if (made_.splits > 1 || !known) return;
    if (!made_.keeps && made_.phases > 1 && made_.across == made_.threads) keep_in_shared();
  }

  void keep_in_shared() {
    constexpr int kHalf = kMostThreads / 2;
    made_.room = std::max(0, target_.shared_bytes - shared_by_joins());
    int64_t bytes = 0;
    for (size_t i = 0; i < kernel_.nodes.size(); ++i)
      if (kernel_.nodes[i].kind == Kind::Load && made_.is_inner[i])
        bytes += ir::bytes(kernel_.buffers[static_cast<size_t>(kernel_.nodes[i].buffer)].dtype);
    bytes *= product(kernel_, made_.inner).constant();
    // Where two blocks fit, one moves memory while the other computes.
    if (2 * bytes <= made_.room) made_.threads = made_.across = std::min(made_.threads, kHalf);
  }

  // Where each loop reads memory again.
  void join_maxima() {
    std::vector<int>& taken = made_.maximum;
    for (int i = 0; i < static_cast<int>(kernel_.nodes.size()); ++i) {
      const int found = shifting_maximum(kernel_, i);
      taken.push_back(std::find(taken.begin(), taken.end(), found) == taken.end() ? found : -1);
    }
    find_levels();
  }

  // What a block shares besides: per reduction, the places where its warps join values.
  int shared_by_joins() const {
    constexpr int kLeast = 4 << 10;
    int bytes = 0;
    for (const ScalarNode& node : kernel_.nodes)
      if (node.kind == Kind::Reduce) bytes += kWarp * ir::bytes(node.type);
    return std::max(kLeast, bytes);
  }

  void split_rows(int64_t steps) {
    const Sym rows = product(kernel_, made_.kept);
    if (!rows.is_constant() || rows.constant() == 0 || made_.across < made_.threads) return;
    if (rows.constant() >= target_.processors) return;
    const bool known = product(kernel_, made_.inner).is_constant();
    if (known && steps * made_.lanes < 2 * kSplitElements) return;
    int64_t splits = split(int64_t{kBlocksPerProcessor} * target_.processors / rows.constant());
    if (known) splits = std::min(splits, steps * made_.lanes / kSplitElements);
    if (splits < 2) return;
    made_.splits = static_cast<int>(splits);
    made_.threads = made_.across = 256;
  }

  // Registers of one element's values.
  int registers_of(Kind kind) const {
    int registers = 0;
    for (size_t i = 0; i < kernel_.nodes.size(); ++i)
      if (kernel_.nodes[i].kind == kind && (kind != Kind::Load || (made_.is_inner[i] && !is_ahead(i))))
        registers += std::max(1, ir::bytes(kernel_.nodes[i].type) / 4);
    return registers;
  }

  void unroll_rows() {
    const int64_t steps = (row_steps() + made_.across - 1) / made_.across;
    if (steps > kMostSteps || steps == 0) return;
    const int64_t registers = steps * made_.lanes * registers_of(Kind::Load);
    const int64_t most = made_.threads > 512 ? kKeptRegisters / 2 : kKeptRegisters;
    made_.keeps = made_.phases > 1 && registers <= most;
    if (made_.keeps || steps * made_.lanes <= 32) made_.steps = static_cast<int>(steps);
  }

  bool is_ahead(size_t i) const { return !made_.ahead.empty() && made_.ahead[i]; }

  // Whole vectors that the GPU copies to shared memory by itself.
  bool can_be_ahead(const ScalarNode& node, size_t i) const {
    if (node.kind != Kind::Load || !made_.vector_load[i] || !made_.is_inner[i] || !node.args.empty()) return false;
    const int bytes = made_.lanes * ir::bytes(kernel_.buffers[static_cast<size_t>(node.buffer)].dtype);
    return (bytes == 4 || bytes == 8 || bytes % kVectorBytes == 0) && !is_steady(kernel_, node.index);
  }

  // Of the widest element that is copied ahead.
  int row_bytes() const {
    int bytes = 0;
    for (size_t i = 0; i < made_.ahead.size(); ++i)
      if (made_.ahead[i])
        bytes = std::max(bytes, ir::bytes(kernel_.buffers[static_cast<size_t>(kernel_.nodes[i].buffer)].dtype));
    return bytes;
  }

  void find_ahead() {
    constexpr int kAmpere = 80;
    if (target_.architecture < kAmpere) return;
    std::vector<bool> found;
    for (size_t i = 0; i < kernel_.nodes.size(); ++i) found.push_back(can_be_ahead(kernel_.nodes[i], i));
    if (std::find(found.begin(), found.end(), true) != found.end()) made_.ahead = std::move(found);
  }

  // As many rows as there is room for, beside what blocks share otherwise.
  void choose_stages() {
    constexpr int kLeast = 2, kMost = 2;
    int64_t row = 0;
    for (size_t i = 0; i < made_.ahead.size(); ++i)
      if (made_.ahead[i]) row += ir::bytes(kernel_.buffers[static_cast<size_t>(kernel_.nodes[i].buffer)].dtype);
    row *= int64_t{made_.steps} * made_.lanes * made_.threads;
    const int64_t room = target_.shared_bytes / made_.resident - shared_by_joins();
    made_.stages = static_cast<int>(std::min<int64_t>(kMost, row > 0 ? room / row : 0));
    if (made_.stages >= kLeast) return;
    made_.stages = 0;
    made_.ahead.clear();
  }

  // A thread adds up its part of a row over all rows that its block walks over.
  void walk_rows() {
    find_ahead();
    share_walked_rows();
    if (made_.ahead.empty()) return;
    choose_stages();
    if (made_.ahead.empty()) share_walked_rows();
  }

  void share_walked_rows() {
    constexpr int kOtherRegisters = 24, kRegisters = 64 << 10, kMostResident = 2048, kMostOwn = 255;
    const int64_t steps = std::max<int64_t>(1, row_steps());
    const int sums = registers_of(Kind::Across), loads = made_.phases > 1 ? registers_of(Kind::Load) : 0;
    const int64_t fitting = kKeptRegisters / (int64_t{made_.lanes} * (sums + loads));
    const bool ahead = !made_.ahead.empty();
    // Joining a row's sums takes each thread some time, which counts where elements are soon read.
    const int64_t most = ahead ? (row_bytes() < 4 ? 2 : 1) : 4;
    const int64_t tuned = std::max<int64_t>(1, most * target_.tiling.steps_per_thread / 4);
    const int64_t per_thread = std::clamp<int64_t>(fitting, 1, tuned);
    const int64_t sharing = next_power((steps + per_thread - 1) / per_thread);
    made_.threads = threads_or(128);
    const int most_threads = ahead && sharing > kMostThreads ? kMostThreads / 2 : kMostThreads;
    if (sharing > kWarp) made_.threads = static_cast<int>(std::min<int64_t>(sharing, most_threads));
    made_.across = static_cast<int>(std::min<int64_t>(sharing, sharing > kWarp ? made_.threads : kWarp));
    made_.steps = static_cast<int>((steps + made_.across - 1) / made_.across);
    const int64_t own = int64_t{made_.steps} * made_.lanes;
    if (made_.across < made_.threads) made_.threads = joining_threads(made_.threads, own);
    made_.keeps = made_.phases > 1 && own * loads <= kKeptRegisters;
    const int64_t registers = own * (sums + (made_.keeps ? loads : 0)) + kOtherRegisters;
    const int64_t threads = std::min<int64_t>(kMostResident, kRegisters / std::min<int64_t>(registers, kMostOwn));
    made_.resident = static_cast<int>(std::max<int64_t>(1, threads / made_.threads));
    // Of rows that are copied ahead few are enough, and memory is faster.
    constexpr int64_t kAheadBytes = 16 << 10;
    if (ahead) {
      const int64_t block = int64_t{made_.threads} * own * row_bytes();
      made_.resident = static_cast<int>(std::clamp<int64_t>(kAheadBytes / block, 1, made_.resident));
    }
    made_.least_walkers = target_.processors;
    const int64_t walkers = split(int64_t{made_.resident} * target_.processors);
    made_.walkers = static_cast<int>(std::max<int64_t>(walkers, target_.processors));
  }

  // --- columns -------------------------------------------------------------------------------------------------------
  void share_columns() {
    const Sym kept = product(kernel_, made_.kept);
    const int64_t columns = std::max<int64_t>(1, hint(kept, 1 << 16) / made_.lanes);
    const int64_t rows = hint(product(kernel_, made_.inner), 4096);
    made_.across = static_cast<int>(std::min<int64_t>(kWarp, next_power(columns)));
    made_.threads = joining_threads(threads_or(256), made_.lanes);
    if (columns >= int64_t{target_.processors} * 1024) {
      made_.across = made_.threads;
      return;
    }
    // No more threads over the rows than there are rows.
    while (made_.threads > kWarp && made_.threads / made_.across > next_power(rows)) made_.threads /= 2;
    made_.across = std::min(made_.across, made_.threads);
    if (!kept.is_constant()) return;
    const int64_t blocks = (columns + made_.across - 1) / made_.across;
    const int64_t lines = made_.threads / made_.across;
    int64_t splits = split(4 * target_.processors / blocks);
    if (product(kernel_, made_.inner).is_constant()) splits = std::min(splits, rows / (8 * lines));
    if (splits < 2) return;
    made_.splits = static_cast<int>(std::min<int64_t>(splits, 1024));
    // Blocks that wait for others' end would double the time: registers are left for all at once.
    constexpr int kResidentThreads = 1024;
    const int64_t each = (blocks * made_.splits + target_.processors - 1) / target_.processors;
    made_.resident = static_cast<int>(std::min<int64_t>(each, std::max(1, kResidentThreads / made_.threads)));
  }

  // Threads join their own values, each reduction in its turn, in the memory that a block shares without asking.
  int joining_threads(int threads, int64_t own) const {
    constexpr int64_t kUnasked = 48 << 10;
    int64_t widest = 1;
    for (const ScalarNode& node : kernel_.nodes)
      if (node.kind == Kind::Reduce || node.kind == Kind::Across)
        widest = std::max<int64_t>(widest, ir::bytes(node.type));
    while (threads > kWarp && threads * own * widest > kUnasked) threads /= 2;
    return threads;
  }

  const Kernel& kernel_;
  const Target& target_;
  const Variant& variant_;
  const Affine* along_ = nullptr;  // peeled: vectors are those of this access
  Schedule made_;
};

}  // namespace

Schedule schedule_kernel(const Kernel& kernel, const Target& target, const Variant& variant) {
  return Scheduler(kernel, target, variant).run();
}

}  // namespace graphlift::cuda
