"""A small BERT trained by transformers.Trainer with torch_compile=True, as its users write it; prints the losses.

--plain: without torch.compile.
"""

import json
import sys
import tempfile

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

CONFIG = BertConfig(
    vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=3
)


class Sentences(torch.utils.data.Dataset):
    def __init__(self):
        numbers = torch.Generator().manual_seed(1)
        self.ids = torch.randint(0, CONFIG.vocab_size, (48, 12), generator=numbers)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {
            "input_ids": self.ids[i],
            "attention_mask": torch.ones(12, dtype=torch.long),
            "labels": self.ids[i, 0] % 3,
        }


class Losses(TrainerCallback):
    def __init__(self):
        self.seen = []

    def on_log(self, args, state, control, logs=None, **kwargs):
        self.seen += [logs["loss"]] if "loss" in logs else []


def main():
    set_seed(0)
    losses = Losses()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=8,
            num_train_epochs=2,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            torch_compile="--plain" not in sys.argv,
        )
        model = BertForSequenceClassification(CONFIG)
        trainer = Trainer(model=model, args=arguments, train_dataset=Sentences(), callbacks=[losses])
        trainer.train()
        losses.seen.append(trainer.evaluate(Sentences())["eval_loss"])
    print("losses", json.dumps([float(loss) for loss in losses.seen]))


if __name__ == "__main__":
    main()
