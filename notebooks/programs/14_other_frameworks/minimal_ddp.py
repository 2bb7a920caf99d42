"""Train with PyTorch: `torchrun --standalone --nproc-per-node 2 minimal_ddp.py`."""

import os

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group()  # 1: torchrun has set rank and world size
device = "cpu"
if torch.cuda.is_available():
    device = f"cuda:{os.environ['LOCAL_RANK']}"  # 2: this rank's own GPU
    torch.cuda.set_device(device)
images, labels = map(torch.tensor, load_digits(return_X_y=True))
dataset = TensorDataset(images.float() / 16, labels)
sampler = DistributedSampler(dataset)  # 7: this rank's share, in a new order each epoch
loader = DataLoader(dataset, batch_size=32, sampler=sampler)  # 8: steps of this share
network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
model = DistributedDataParallel(network)  # 4 and 5: averages gradients, sends rank 0's weights
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * dist.get_world_size())  # 3
for epoch in range(5):
    sampler.set_epoch(epoch)
    for batch, targets in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(batch.to(device)), targets.to(device))
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:  # 6: a checkpoint would be saved here, too
        print(f"epoch {epoch}: loss of rank 0's last batch {loss.item():.2f}", flush=True)
dist.destroy_process_group()
