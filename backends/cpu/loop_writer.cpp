// Owns: see loop_writer.h.
#include "backends/cpu/loop_writer.h"

namespace graphlift::cpu {

using ir::DType;

Reg LoopWriter::symbolic(const ir::Sym& value) {
  if (value.is_constant()) return whole(value.constant());
  const auto [found, fresh] = number_of_.emplace(value.str(), static_cast<int>(numbers_.size()));
  if (fresh) numbers_.push_back(value);
  return {"%n" + std::to_string(found->second), DType::int64, 1};
}

Reg LoopWriter::add(const Reg& a, const Reg& b) {
  if (a.text == "0") return b;
  if (b.text == "0") return a;
  return code_.binary("add nsw", a, b);
}

Reg LoopWriter::times(const Reg& a, const Reg& b) {
  if (a.text == "0" || b.text == "0") return whole(0);
  if (a.text == "1") return b;
  if (b.text == "1") return a;
  return code_.binary("mul nsw", a, b);
}

Reg LoopWriter::take(Reg* rest, const Reg& count) {
  if (count.text == "1") return whole(0);
  const Reg part = code_.binary("urem", *rest, count);
  *rest = code_.binary("udiv", *rest, count);
  return part;
}

std::string LoopWriter::variable(const std::string& type) {
  const std::string name = "%" + code_.fresh("x");
  allocas_ += "  " + name + " = alloca " + type + "\n";
  return name;
}

void LoopWriter::set(const std::string& variable, const Reg& value) {
  code_.line("store " + Code::type(value) + " " + value.text + ", ptr " + variable);
}

Reg LoopWriter::get(const std::string& variable, DType type, int lanes) {
  return code_.define(type, lanes, "load " + Code::type(type, lanes) + ", ptr " + variable);
}

std::string LoopWriter::loop(const std::string& from, const std::string& to, int64_t step,
                             const std::function<void(const Reg&)>& body) {
  // The condition stands at the end, and once in front: what does not change in a loop then has a place before it.
  const std::string counter = variable("i64");
  const std::string inside = code_.fresh("body"), done = code_.fresh("done");
  auto go_on = [&](const Reg& i) {
    const Reg last = step == 1 ? i : code_.binary("add nsw", i, whole(step - 1));
    const Reg more = code_.compare("icmp slt", last, {to, DType::int64, 1});
    code_.line("br i1 " + more.text + ", label %" + inside + ", label %" + done);
  };
  set(counter, {from, DType::int64, 1});
  const bool known = !from.starts_with('%') && !to.starts_with('%');
  if (known)
    code_.line("br label %" + (std::stoll(from) + step <= std::stoll(to) ? inside : done));
  else
    go_on({from, DType::int64, 1});
  code_.label(inside);
  const size_t outside = code_.enter_block();
  const Reg i = get(counter, DType::int64, 1);
  body(i);
  const Reg next = code_.binary("add nsw", i, whole(step));
  set(counter, next);
  go_on(next);
  code_.leave_block(outside);
  code_.label(done);
  return counter;
}

void LoopWriter::when(const Reg& condition, const std::function<void()>& yes, const std::function<void()>& no) {
  const std::string then = code_.fresh("then"), otherwise = code_.fresh("else"), end = code_.fresh("end");
  code_.line("br i1 " + condition.text + ", label %" + then + ", label %" + (no ? otherwise : end));
  const size_t outside = code_.enter_block();
  auto block = [&](const std::string& label, const std::function<void()>& body) {
    code_.label(label);
    body();
    code_.leave_block(outside);
    code_.line("br label %" + end);
  };
  block(then, yes);
  if (no) block(otherwise, no);
  code_.label(end);
}

void LoopWriter::end_function() {
  code_.line("ret void");
  functions_.push_back(allocas_ + code_.take_body());
  allocas_.clear();
}

template <class Visit>
void LoopWriter::for_each_parameter(size_t buffers, Visit visit) const {
  for (size_t i = 0; i < buffers; ++i) visit("ptr", "b" + std::to_string(i), "%buffers", i);
  for (size_t i = 0; i < numbers_.size(); ++i) visit("i64", "n" + std::to_string(i), "%numbers", i);
}

std::string LoopWriter::module(const std::string& name, size_t buffers) const {
  std::string parameters, loads, arguments, text = code_.declarations();
  // What the function's tables hold becomes parameters of the functions that work.
  auto load = [&](const std::string& type, const std::string& to, const std::string& table, size_t i) {
    loads += "  %p" + to + " = getelementptr " + type + ", ptr " + table + ", i64 " + std::to_string(i) + "\n  %" + to +
             " = load " + type + ", ptr %p" + to + "\n";
  };
  for_each_parameter(buffers, [&](const std::string& type, const std::string& to, const std::string& table, size_t i) {
    parameters += type + (type == "ptr" ? " noalias" : "") + " %" + to + ", ";
    arguments += type + " %" + to + ", ";
    load(type, to, table, i);
  });
  const std::string bits = std::to_string(code_.target().vector_bytes * 8);
  const std::string head = "define void @" + name + "(ptr %buffers, ptr %numbers, i64 %begin, i64 %end) #0 {\n";
  const std::string attributes = "attributes #0 = { nounwind \"prefer-vector-width\"=\"" + bits +
                                 "\" \"min-legal-vector-width\"=\"" + bits + "\" }\n";
  // A second function costs more than a short kernel's loop.
  if (functions_.size() == 1) return text + head + "entry:\n" + loads + functions_[0] + "}\n" + attributes;
  for (size_t i = 0; i < functions_.size(); ++i)
    text += "define internal void @" + name + "_work" + std::to_string(i) + "(" + parameters +
            "i64 %begin, i64 %end) #0 {\nentry:\n" + functions_[i] + "}\n";
  auto call = [&](size_t i) {
    return "  call void @" + name + "_work" + std::to_string(i) + "(" + arguments +
           "i64 %begin, i64 %end)\n  ret void\n";
  };
  std::string calls, cases;
  load("i64", "stage", "%numbers", numbers_.size());
  for (size_t i = 1; i < functions_.size(); ++i) {
    const std::string label = "stage" + std::to_string(i);
    cases += " i64 " + std::to_string(i) + ", label %" + label;
    calls += label + ":\n" + call(i);
  }
  loads += "  switch i64 %stage, label %stage0 [" + cases + " ]\nstage0:\n";
  return text + head + loads + call(0) + calls + "}\n" + attributes;
}

}  // namespace graphlift::cpu
