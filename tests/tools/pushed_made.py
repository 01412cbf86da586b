"""For record_made, progress "pushed": an MPI whose blocking sends bring long messages themselves where their receive is posted,
and whose waits for sends alone go on after a while, with a copy left behind. Else a thread moves what is there on both sides."""


class Pushes:
    def __init__(self, world, patience, byte, eager, fits):
        self.world, self.patience, self.byte, self.eager, self.fits = world, patience, byte, eager, fits

    def send(self, message):
        """Whether its sender copies it now."""
        world, way = self.world, (message.source, message.target)
        if message.bytes <= self.eager or not message.blocking or world.arrived.get(way, 0) > world.now:
            return False
        target, source = world.processes[message.target], world.processes[message.source]
        request = next((one for one in target.posted if self.fits(one, message)), None)
        if request is None:
            return False
        target.posted.remove(request)
        message.eager, message.could = False, world.now
        request.message, message.receive = message, request
        source.copies = max(world.now, source.copies) + self.world.data(message)
        world.at(source.copies, lambda: self.finish(message))
        return True

    def move(self, message):
        data = self.world.data(message)
        message.could += data
        self.world.at(self.world.now + data, lambda: self.finish(message))

    def finish(self, message):
        for request in (message.send, message.receive):
            if request.done.when is None:
                self.world.fire(request.done)

    def waits(self, requests):
        """A call begins to wait for these. What moves by then is not let go."""
        left = [one for one in requests if one.done.when is None]
        if not left or any(one.flag != 1 or one.message.eager for one in left):
            return
        copies = sum(round(one.message.bytes * self.byte / 2) for one in left)

        def let_go():
            for one in left:
                if one.done.when is None and one.message.receive is None:
                    self.world.fire(one.done)

        self.world.at(self.world.now + self.patience + copies, let_go)
