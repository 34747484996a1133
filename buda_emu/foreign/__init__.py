"""Documents of other systems, each in a package that nothing else imports: `app.documents.kinds` names its modules."""
